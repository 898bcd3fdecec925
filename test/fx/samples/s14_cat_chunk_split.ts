// s14: joining, cutting and indexing.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Slice, operator } from 'tensorfx/fx'
import { Module } from 'tensorfx/nn'
import { detInput } from './common.ts'
import type { Sample } from './common.ts'

const all = new Slice<number>(null, null)

class M extends Module {
  override forward(x: Tensor): unknown {
    const [a, b] = torch.chunk(x, 2, { dim: 1 }) as [Tensor, Tensor]
    const s = torch.split(x, [1, 3], { dim: 1 })
    const c = torch.cat([a, s[1] as Tensor, operator.getitem(b, [all, new Slice<number>(null, 1)]) as Tensor], { dim: 1 })
    const d = operator.getitem(x, [all, null, '...', new Slice<number>(1, 3)])
    const e = operator.getitem(c, [0, -1])
    const [p, _q] = x.shape as [number, number]
    return [c.view(operator.mul(p, 1) as number, -1), d, e, operator.getitem(x, [new Slice<number>(null, null, 2), [0, 2]]), s]
  }
}

export const samples: readonly Sample[] = [{ golden: 'cat_chunk_split', make: () => new M().eval(), inputs: () => [detInput([3, 4], 119)] }]
