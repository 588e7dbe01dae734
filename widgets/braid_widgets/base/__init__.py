"""What the views of all papers share."""
