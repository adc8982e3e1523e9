"""Messages of protocols that are not ours, as generated code. Each `.proto` here says how."""
