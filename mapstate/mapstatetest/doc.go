// Package mapstatetest holds what the tests of states share: the acceptance
// suites of the interfaces in package mapstate, an oracle that says what a state
// must hold, and short ways to write keys and values down. Only tests import it.
package mapstatetest
