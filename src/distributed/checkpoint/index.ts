// Checkpoints by several ranks: which ranks save and load together, and how models and optimizers that they hold in parts are read and set. PyTorch's torch.distributed.checkpoint.
import type { Ranks } from '../../checkpoint/team.ts'
import { ArgumentError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { DistributedDataParallel } from '../ddp/ddp.ts'
import { unitsIn } from '../fsdp/unit.ts'
import { ProcessGroup, groupOr } from '../processGroup.ts'
import { modelPart, optimizerPart } from './state.ts'
import { teamOf } from './team.ts'

/** How ranks save and load together. */
export const checkpointRanks: Ranks = {
  teamOf(where, models, group) {
    if (group !== undefined && !(group instanceof ProcessGroup))
      throw new ArgumentError(`${where}: option 'group' must be a ProcessGroup, such as newGroup returns, got ${valueText(group)}.`)
    const isDivided = models.some((model) => model instanceof DistributedDataParallel || unitsIn(model).length > 0)
    return group === undefined && !isDivided ? null : teamOf(groupOr(group))
  },
  modelPart,
  optimizerPart,
}
