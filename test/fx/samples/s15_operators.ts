// s15: every operator, attribute and method that a traced value supports.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Slice, operator as op } from 'tensorfx/fx'
import type { Proxied } from 'tensorfx/fx'
import { F } from 'tensorfx/nn'
import { detInput } from './common.ts'
import type { Sample, Variant } from './common.ts'

function ops(x: Proxied, y: Proxied, i: Proxied): unknown {
  return [
    ...[op.add(x, y), op.sub(x, y), op.mul(x, y), op.truediv(x, y), op.floordiv(x, y), op.mod(x, y), op.pow(x, 2), op.matmul(x, y)],
    ...[op.and_(x, i), op.or_(x, i), op.xor(x, i), op.lshift(i, 1), op.rshift(i, 1)],
    ...[op.neg(x), op.pos(x), op.invert(i), op.abs(x)],
    ...[op.eq(x, y), op.ne(x, y), op.lt(x, y), op.le(x, y), op.gt(x, y), op.ge(x, y)],
    ...[op.add(1, x), op.sub(1, x), op.mul(2, x), op.truediv(1, x), op.floordiv(7, x), op.mod(7, x), op.pow(2, x)],
    ...[op.and_(5, i), op.or_(5, i), op.xor(5, i), op.lshift(1, i), op.rshift(1, i)],
    ...[x[0], op.getitem(x, new Slice<number>(1, null)), op.getitem(x, ['...', 0])],
    ...[x['T'], x['shape'], x['size'](), x['size'](0), x['sum']({ dim: 0, keepdim: true }), x['mT'], x['foo'].bar(3)],
  ]
}

function functional(x: Tensor): unknown {
  const a = F.relu(x)
  const b = F.gelu(x)
  const c = torch.sigmoid(x)
  const d = F.dropout(x, { p: 0.5, training: false })
  const e = F.layerNorm(x, [4])
  const g = F.softmax(x, { dim: -1 })
  const h = F.pad(x, [1, 1])
  const i = torch.clamp(x, { min: 0, max: 1 })
  const j = torch.where(x.gt(0), x, torch.zerosLike(x))
  const k = torch.einsum('ij,kj->ik', x, x)
  const l = x.to('float64')
  const m = x.to({ dtype: 'float16' })
  const n = torch.fullLike(x, Infinity)
  const o = x.maskedFill(x.gt(0), -Infinity)
  const p = torch.cat([a, b], { dim: 0 })
  const q = torch.stack([a, b])
  const r = x.permute(1, 0)
  const s = x.expand(2, 3, 4)
  const t = x.to('cpu')
  const u = x.to('cpu')
  const v = torch.add(x, x, { alpha: 2 })
  const w = torch.relu(x)
  const z = F.gelu(x)
  return [a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, z]
}

export const samples: readonly Sample[] = [
  { golden: 'operators', make: () => ops, inputs: null },
  { golden: 'operators.functional', make: () => functional, inputs: () => [detInput([3, 4], 1)] },
]

function inplace(x: Tensor, y: Tensor): unknown {
  x = x.add(y)
  x = x.sub(1)
  x = x.mul(y)
  x = x.div(2)
  x = x.pow(2)
  const z = x.clone().add_(y).relu_()
  return [x, z]
}

export const variants: readonly Variant[] = [
  { name: 'operators.inplace', make: () => inplace, inputs: () => [detInput([2, 4], 1), detInput([2, 4], 2)] },
]
