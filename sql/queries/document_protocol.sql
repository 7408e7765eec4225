select * from protocols where protocol_digest = $digest
