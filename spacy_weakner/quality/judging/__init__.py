"""Parts of `judge`: what weak labels are worth, measured on gold."""
