// Scaling of losses, so that small gradients survive half precision; all ranks agree on whether a step is skipped.
import { GradScaler } from '../../optim/index.ts'
import type { GradScalerOptions } from '../../optim/index.ts'
import { checkArgument, checkCount, checkMethod, isObject } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { allReduce } from '../inPlace.ts'
import type { ProcessGroup } from '../processGroup.ts'

/** Options of {@link ShardedGradScaler}. */
export interface ShardedGradScalerOptions extends GradScalerOptions {
  /** The ranks that agree. Default: all. */
  readonly processGroup?: ProcessGroup
}

/**
 * A GradScaler for models whose gradients lie on several ranks: if any rank's gradients are not finite, all ranks skip the step. PyTorch's `ShardedGradScaler`.
 *
 * @example
 * const scaler = new ShardedGradScaler()
 * scaler.scale(loss).backward()
 * scaler.step(optimizer)
 * scaler.update()
 */
export class ShardedGradScaler extends GradScaler {
  readonly #group: ProcessGroup | undefined

  constructor(options: ShardedGradScalerOptions = {}) {
    checkCount('ShardedGradScaler', arguments, 1)
    checkArgument(isObject(options), 'ShardedGradScaler', 'options', 'an object', options)
    const { processGroup, ...others } = options
    super(others)
    this.#group = processGroup
  }

  protected override agree(found: boolean): boolean {
    checkMethod(this, 'agree', arguments, 1)
    const any = Tensor.empty([1], 'int32').fill_(found ? 1 : 0)
    allReduce(any, { op: 'max', ...(this.#group === undefined ? {} : { group: this.#group }) })
    return any.item() !== 0
  }
}
