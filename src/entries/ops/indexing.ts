// tensorfx/ops/indexing: for programs on tensorfx/core, the operators of this group.
import { installOperators } from '../../install/operators.ts'
import { operators } from '../../ops/generated/groups/indexing.ts'

installOperators(operators)
