"""Views of a PSP ring. Source: Wang 2008, Part II."""
