// The operators that have no rule for symbolic sizes: 'tensorfx ops --symbolic' lists them. A test calls every operator with symbolic sizes and compares.

/** Their qualified names, sorted. None is left; a new operator whose rule needs numbers is named here until it has one. */
export const withoutShapeRule: readonly string[] = []
