module tine

go 1.26
