"""What every part of a scenario file has in common."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """Has no keys but its own, and is not changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
