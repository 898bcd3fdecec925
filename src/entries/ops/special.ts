// tensorfx/ops/special: for programs on tensorfx/core, the operators of this group.
import { installOperators } from '../../install/operators.ts'
import { operators } from '../../ops/generated/groups/special.ts'

installOperators(operators)
