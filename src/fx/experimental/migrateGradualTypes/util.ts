// New variables, numbered by one counter, and what holds for sizes. PyTorch's torch.fx.experimental.migrate_gradual_types.util.
import { BVar, BinConstraintD, DVar, TVar } from './constraint.ts'
import type { Size } from './constraint.ts'
import { opLeq } from './operation.ts'

/** A new variable of a tensor, and the counter after it. PyTorch's gen_tvar. */
export const genTvar = (counter: number): [TVar, number] => [new TVar(counter + 1), counter + 1]

/** A new variable of a size, and the counter after it. PyTorch's gen_dvar. */
export const genDvar = (counter: number): [DVar, number] => [new DVar(counter + 1), counter + 1]

/** A new variable that is true or false, and the counter after it. PyTorch's gen_bvar. */
export const genBvar = (counter: number): [BVar, number] => [new BVar(counter + 1), counter + 1]

/** New variables of sizes, and the counter after them. PyTorch's gen_tensor_dims. */
export const genTensorDims = (count: number, counter: number): [DVar[], number] => [
  Array.from({ length: count }, (_, i) => new DVar(counter + i + 1)),
  counter + count,
]

/** That no size is negative. PyTorch's gen_nat_constraints. */
export const genNatConstraints = (sizes: readonly Size[]): BinConstraintD[] => sizes.map((size) => new BinConstraintD(0, size, opLeq))

/** A counter that numbers variables of all kinds. */
export class Fresh {
  counter: number

  constructor(counter: number) {
    this.counter = counter
  }

  tensor(): TVar {
    return new TVar(++this.counter)
  }

  size(): DVar {
    return new DVar(++this.counter)
  }

  truth(): BVar {
    return new BVar(++this.counter)
  }

  sizes(count: number): DVar[] {
    return Array.from({ length: count }, () => this.size())
  }
}
