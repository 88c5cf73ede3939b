// Package mapstatetest holds what the tests of states share: the acceptance
// suites of the interfaces in package mapstate, a fault injector,
// and short ways to write keys and values down. Only tests import it.
package mapstatetest
