// tensorfx/ops/random: for programs on tensorfx/core, the operators of this group.
import { installGroup } from '../../install/operators.ts'
import { operators } from '../../ops/generated/groups/random.ts'

installGroup(operators)
