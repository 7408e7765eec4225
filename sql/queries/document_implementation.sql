select * from implementations where implementation_digest = $digest
