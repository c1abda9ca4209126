"""What `adapt` is made of: text as sequences of pieces, masks, the training, and its folders."""
