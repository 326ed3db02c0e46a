package binlog

import (
	"net"

	"github.com/go-mysql-org/go-mysql/mysql"
	fakemysql "github.com/go-mysql-org/go-mysql/server"
)

// dialFake connects to a MySQL server in memory whose commands h deals with. begun, if it is not nil, is given the server's
// side before the first one.
func dialFake(h fakemysql.Handler, begun func(*fakemysql.Conn)) net.Conn {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		users := fakemysql.NewInMemoryAuthenticationHandler(mysql.AUTH_NATIVE_PASSWORD)
		if users.AddUser("u", "pw") != nil {
			return
		}
		conf := fakemysql.NewServer("9.7.0", mysql.DEFAULT_COLLATION_ID, mysql.AUTH_NATIVE_PASSWORD, nil, nil)
		c, err := conf.NewCustomizedConn(theirs, users, h)
		if err != nil {
			return
		}
		if begun != nil {
			begun(c)
		}
		for c.HandleCommand() == nil && !c.Closed() {
		}
	}()
	return ours
}

// textResult is the result of a query as text.
func textResult(names []string, rows ...[]any) (*mysql.Result, error) {
	rs, err := mysql.BuildSimpleTextResultset(names, rows)
	return mysql.NewResult(rs), err
}
