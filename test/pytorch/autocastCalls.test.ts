// The calls of the 'odd' model of the recorded autocast (test/goldens/around, PyTorch 2.13): operators on mixed dtypes, recurrent and bilinear layers, a disabled and a nested
// region. Its program was not kept, but what it called was, with the dtypes that went in and came out: each call is made here on tensors of those dtypes.
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { Tensor, nn, torch } from 'tensorfx'
import type { DType } from 'tensorfx'

type Call = readonly [op: string, inputs: readonly DType[], outputs: readonly DType[]]
interface Recorded {
  readonly name: string
  readonly dtype: 'bfloat16' | 'float16'
  readonly user: readonly Call[]
}
const file = new URL('../goldens/around/autocast-models.json.gz', import.meta.url)
const all: readonly Recorded[] = JSON.parse(gunzipSync(readFileSync(file)).toString('utf8'))
const odd = all.filter(({ name }) => name.startsWith('odd'))

const { functional: F } = nn
const SIZE = 4
const tensorOf = (dtype: DType, shape: readonly number[] = [SIZE, SIZE]): Tensor => torch.rand(shape).add(0.5).to(dtype)

/** What PyTorch's functions are called here, on tensors of the dtypes that went in. A call without a row fails. */
const CALLS: Readonly<Record<string, (...inputs: readonly DType[]) => unknown>> = {
  'torch.nn.functional.linear': (x, w, b) => F.linear(tensorOf(x), tensorOf(w), tensorOf(b, [SIZE])),
  'torch.nn.functional.prelu': (x, w) => F.prelu(tensorOf(x), tensorOf(w, [1])),
  'torch.nn.functional.bilinear': (x, y, w, b) => F.bilinear(tensorOf(x), tensorOf(y), tensorOf(w, [3, SIZE, SIZE]), tensorOf(b, [3])),
  'torch.nn.functional.layer_norm': (x) => F.layerNorm(tensorOf(x), [SIZE]),
  'torch.nn.functional.rms_norm': (x) => F.rmsNorm(tensorOf(x), [SIZE]),
  'torch.lstm': (x, h, c, weight) => {
    const [out, state] = new nn.LSTM(SIZE, SIZE).to(weight)(tensorOf(x, [2, 3, SIZE]), [tensorOf(h, [1, 3, SIZE]), tensorOf(c, [1, 3, SIZE])])
    return [out, ...state]
  },
  'torch.functional.einsum': (x, y) => torch.einsum('ij,jk->ik', tensorOf(x), tensorOf(y)),
  'torch.cat': (x, y) => torch.cat([tensorOf(x), tensorOf(y)]),
  'torch.stack': (x, y) => torch.stack([tensorOf(x), tensorOf(y)]),
  'torch.addmm': (x, y, z) => torch.addmm(tensorOf(x), tensorOf(y), tensorOf(z)),
  'torch.linalg.norm': (x) => torch.linalg.norm(tensorOf(x)),
  'torch.Tensor.__getitem__': (x) => tensorOf(x).select(0, 1),
  'torch.Tensor.add': (x, y) => tensorOf(x).add(tensorOf(y)),
  'torch.Tensor.add_': (x) => tensorOf(x).add_(1),
  'torch.Tensor.bfloat16': (x) => tensorOf(x).bfloat16(),
  'torch.Tensor.clone': (x) => tensorOf(x).clone(),
  'torch.Tensor.cumsum': (x) => tensorOf(x).cumsum(0),
  'torch.Tensor.double': (x) => tensorOf(x).double(),
  'torch.Tensor.exp': (x) => tensorOf(x).exp(),
  'torch.Tensor.float': (x) => tensorOf(x).float(),
  'torch.Tensor.log': (x) => tensorOf(x).log(),
  'torch.Tensor.matmul': (x, y) => tensorOf(x).matmul(tensorOf(y)),
  'torch.Tensor.mean': (x) => tensorOf(x).mean(),
  'torch.Tensor.pow': (x) => tensorOf(x).pow(2),
  'torch.Tensor.softmax': (x) => tensorOf(x).softmax(-1),
  'torch.Tensor.sum': (x) => tensorOf(x).sum(),
  'torch.Tensor.transpose': (x) => tensorOf(x).transpose(0, 1),
}
/** Calls that ask for sizes, and the states of the LSTM, which the program makes in a dtype of its own. */
const WITHOUT_DTYPES = new Set(['torch.Tensor.dim', 'torch.Tensor.size', 'torch.zeros'])

/** The regions in which the model calls: its own; one without autocast and one of the other low precision, in both of which it only multiplies matrices. */
function regionOf({ dtype }: Recorded, [op, inputs, outputs]: Call): { readonly dtype: 'bfloat16' | 'float16'; readonly enabled: boolean } {
  const isProduct = op === 'torch.Tensor.matmul' && inputs.every((one) => one === 'float32')
  if (isProduct && outputs[0] === 'float32') return { dtype, enabled: false }
  const other = dtype === 'bfloat16' ? 'float16' : 'bfloat16'
  return { dtype: isProduct && outputs[0] === other ? other : dtype, enabled: true }
}

const dtypesOf = (value: unknown): readonly DType[] => (value instanceof Tensor ? [value.dtype] : Array.isArray(value) ? value.flatMap(dtypesOf) : [])

it('two models are recorded', () => expect(odd.length).toBe(2))

describe.each(odd)('$name', (model) => {
  const calls = new Map(
    model.user.filter(([op]) => !WITHOUT_DTYPES.has(op)).map((call) => [`${call[0]}(${call[1].join(', ')}) -> ${call[2].join(', ')}`, call]),
  )

  it.each([...calls])('%s', (_, call) => {
    const [op, inputs, outputs] = call
    const run = CALLS[op]
    if (run === undefined) throw new Error(`${op} has no row in CALLS.`)
    const region = regionOf(model, call)
    expect(torch.autocast({ dtype: region.dtype, enabled: region.enabled }, () => dtypesOf(run(...inputs)))).toEqual(outputs)
  })
})
