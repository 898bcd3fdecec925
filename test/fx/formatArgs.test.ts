// How values print in a node's line, and what they are in generated code.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import { Graph, GraphModule, Slice, tuple } from 'tensorfx/fx'
import type { Argument } from 'tensorfx/fx'
import { readExtra } from './golden.ts'

const golden = readExtra<{ cases: readonly { readonly value: string; readonly format_node?: string }[] }>('format_args')

/** Python's values here; those that JavaScript has no value for are left out (difference: one-number-type) (difference: constants-as-strings). */
const values: Readonly<Record<string, Argument>> = {
  '1': 1,
  '-1': -1,
  '1.5': 1.5,
  '1e-05': 1e-5,
  '1e+20': 1e20,
  inf: Infinity,
  '-inf': -Infinity,
  nan: NaN,
  True: true,
  None: null,
  "'str'": 'str',
  '"it\'s"': "it's",
  "'new\\nline'": 'new\nline',
  '[1, [2, 3]]': [1, [2, 3]],
  '(1,)': tuple(1),
  '()': tuple(),
  '[]': [],
  '{}': {},
  "{'a': 1, 'b': [1, 2]}": { a: 1, b: [1, 2] },
  'slice(1, None, 2)': new Slice(1, null, 2),
  'slice(None, None, None)': new Slice(null, null, null),
  'torch.Size([2, 3])': tuple(2, 3),
}

describe('values in a node', () => {
  it.each(Object.entries(values))('%s prints as in PyTorch, and the code gives it back', (text, value) => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const node = graph.callFunction(torch.add, [x, value], { k: value })
    expect(node.formatNode().replace('num_users=0', 'num_users=1')).toBe(golden.cases.find((c) => c.value === text)?.format_node)
    const back = new Graph()
    back.placeholder('x')
    back.output([value, { k: value }])
    const plain = (v: unknown): unknown => (v instanceof Slice ? ['slice', v.start, v.stop, v.step] : Array.isArray(v) ? v.map(plain) : v)
    const [first, second] = new GraphModule({}, back).call(0) as [unknown, { k: unknown }]
    expect(plain(first)).toEqual(plain(value))
    expect(plain(second.k)).toEqual(plain(value))
  })

  it('covers what JavaScript has a value for', () => {
    const others = golden.cases.map((c) => c.value).filter((v) => !(v in values))
    expect(others).toEqual([
      '1.0',
      'Ellipsis',
      'torch.float32',
      'torch.int64',
      "device(type='cpu')",
      "device(type='cuda', index=0)",
      'torch.strided',
      'torch.contiguous_format',
      '(2+3j)',
      'range(0, 3)',
      'P(a=1, b=2)',
      'torch.float16',
      "b'ab'",
      "<class 'int'>",
      "<class 'float'>",
      "<class 'torch.Tensor'>",
    ])
  })
})
