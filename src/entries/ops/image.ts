// tensorfx/ops/image: for programs on tensorfx/core, the operators of this group.
import { installGroup } from '../../install/operators.ts'
import { operators } from '../../ops/generated/groups/image.ts'

installGroup(operators)
