// tensorfx/ops/aliases: for programs on tensorfx/core, the other names of operators, of all groups.
import { installGroup } from '../../install/operators.ts'
import { allAliases } from '../../ops/names/aliases.ts'

installGroup(allAliases)
