"""Tables that others refer to: addresses, ZIP codes, states, tax rates. Only addresses grow with the customers."""

from sqlalchemy import CHAR, CheckConstraint, ForeignKey, Numeric, Table

from stallmark.schema.brokerage.common import METADATA, column, key, text

STATUS_TYPE = Table("status_type", METADATA, column("st_id", CHAR(4), primary_key=True), text("st_name", 10, 8))
TAXRATE = Table(
    "taxrate",
    METADATA,
    text("tx_id", 4, 4, primary_key=True),
    text("tx_name", 50, 25),
    column("tx_rate", Numeric(6, 5), info={"mean_bytes": 7}),
    CheckConstraint("tx_rate >= 0 AND tx_rate < 1", name="tx_rate"),
)
ZIP_CODE = Table(
    "zip_code", METADATA, text("zc_code", 12, 5, primary_key=True), text("zc_town", 80, 12), text("zc_div", 80, 2)
)
ADDRESS = Table(
    "address",
    METADATA,
    key("ad_id", primary_key=True),
    text("ad_line1", 80, 18, nullable=True),
    text("ad_line2", 80, 4, nullable=True),
    text("ad_zc_code", 12, 5, ForeignKey("zip_code.zc_code")),
    text("ad_ctry", 80, 3, nullable=True),
)
