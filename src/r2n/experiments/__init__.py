"""Who decides: names become objects here, and nowhere below."""
