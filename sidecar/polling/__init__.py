"""The engine looked at again and again, beside the requests or without them."""
