// tensorfx/ops/image: for programs on tensorfx/core, the operators of this group.
import { installOperators } from '../../install/operators.ts'
import { operators } from '../../ops/generated/groups/image.ts'

installOperators(operators)
