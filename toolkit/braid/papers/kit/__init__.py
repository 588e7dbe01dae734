"""What the policies of several papers share."""
