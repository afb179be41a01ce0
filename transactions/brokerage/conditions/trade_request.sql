-- Each pending limit trade, and no other, has a request that says the same.
SELECT COALESCE(r.tr_t_id, t.t_id) AS trade, t.t_st_id, r.tr_tt_id, t.t_tt_id, r.tr_s_symb, t.t_s_symb,
       r.tr_qty, t.t_qty, r.tr_bid_price, t.t_bid_price, r.tr_b_id, t.ca_b_id
  FROM brokerage.trade_request r
  FULL JOIN (SELECT t.t_id, t.t_st_id, t.t_tt_id, t.t_s_symb, t.t_qty, t.t_bid_price, y.tt_is_mrkt, a.ca_b_id
               FROM brokerage.trade t
               JOIN brokerage.trade_type y ON y.tt_id = t.t_tt_id
               JOIN brokerage.customer_account a ON a.ca_id = t.t_ca_id
              WHERE t.t_st_id = 'PNDG') t ON t.t_id = r.tr_t_id
 WHERE r.tr_t_id IS NULL
    OR t.t_id IS NULL
    OR t.tt_is_mrkt = 'true'
    OR r.tr_tt_id <> t.t_tt_id
    OR r.tr_s_symb <> t.t_s_symb
    OR r.tr_qty <> t.t_qty
    OR r.tr_bid_price <> t.t_bid_price
    OR r.tr_b_id <> t.ca_b_id
