"""What each table means: frames in, frames out; no session, path or clock of their own."""
