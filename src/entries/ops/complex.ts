// tensorfx/ops/complex: for programs on tensorfx/core, complex numbers: the operators of this group, and what the others compute with them.
import { installGroup } from '../../install/operators.ts'
import { installComplex } from '../../ops/complex/handler.ts'
import { operators } from '../../ops/generated/groups/complex.ts'

installGroup(operators)
installComplex()
