// What autocast does with each operator is what PyTorch's autocast does on the CPU (PyTorch 2.13, test/goldens/autocast-cpu.json: the lists of ATen/autocast_mode).
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { AutocastClass } from 'tensorfx/ops'
import { builtInOps } from './builtInOps.ts'

const lists = JSON.parse(readFileSync(new URL('../goldens/autocast-cpu.json', import.meta.url), 'utf8')) as Readonly<
  Record<'lower_precision_fp' | 'fp32' | 'promote', readonly string[]>
>
/** Names without overloads. */
const names = (list: readonly string[]): string[] => list.map((name) => name.split('.')[0] as string)
const PYTORCH: ReadonlyMap<string, AutocastClass> = new Map([
  ...names(lists.lower_precision_fp).map((name) => [name, 'half'] as const),
  ...names(lists.fp32).map((name) => [name, 'float32'] as const),
  ...names(lists.promote).map((name) => [name, 'promote'] as const),
])

/** Functions that PyTorch computes by an operator of another name. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  'torch.nn.functional.cross_entropy': 'cross_entropy_loss',
  'torch.nn.functional.grid_sample': 'grid_sampler',
}
const atenName = (qualname: string): string => {
  const at = qualname.lastIndexOf('.')
  const [namespace, name] = [qualname.slice(0, at), qualname.slice(at + 1)]
  if (namespace === 'torch.linalg' || namespace === 'torch.fft') return `${namespace.slice('torch.'.length)}_${name}`
  return OTHER_NAMES[qualname] ?? (['torch', 'torch.nn.functional', 'torch.Tensor'].includes(namespace) ? name : qualname)
}

/** What PyTorch lists and there is no operator for. */
const ABSENT: Readonly<Record<string, string>> = {
  'only kernels of PyTorch call it':
    '_addmm_activation _convolution _grid_sampler_2d_cpu_fallback _lu_with_info _native_multi_head_attention mkldnn_rnn_layer multilabel_margin_loss_forward nll_loss2d',
  'another name of one that is listed': 'orgqr',
  'quantized tensors': 'fake_quantize_per_tensor_affine',
  'F.pad computes it, by its mode': 'reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d replication_pad3d',
}

// Other names of operators decompose into these, and in-place operators keep the dtype of what they write to.
const operators = builtInOps().filter((op) => op.aliasOf === null && !op.tags.has('mutates'))

test('every operator is in the class in which PyTorch has it', () => {
  const wrong = operators.flatMap(({ qualname, autocast }) => {
    const want = PYTORCH.get(atenName(qualname)) ?? 'as is'
    // What PyTorch does not list stays as it is, within composites too if it has a kernel there: test/pytorch/autocast.test.ts compares results.
    return autocast === want || (want === 'as is' && autocast === 'untouched') ? [] : [`${qualname}: ${autocast} instead of ${want}`]
  })
  expect(wrong).toEqual([])
})

test('every operator of the lists is there, but those with reasons', () => {
  const there = new Set(operators.map(({ qualname }) => atenName(qualname)))
  const absent = Object.values(ABSENT).flatMap((text) => text.split(' '))
  expect([...PYTORCH.keys()].filter((name) => !there.has(name)).toSorted()).toEqual(absent.toSorted())
})
