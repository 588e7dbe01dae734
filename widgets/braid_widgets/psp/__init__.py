"""Views of a PSP ring: Wang 2008, Part II."""
