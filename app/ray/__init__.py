"""Work on a Ray cluster. Nothing else imports Ray, and only this needs the extra `distributed`."""
