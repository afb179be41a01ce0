"""The load driver: controller, conductor, executors, virtual users and background sessions."""
