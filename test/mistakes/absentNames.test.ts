// Every public name of PyTorch's namespaces (1.13, recorded by scripts/names/record.py) exists here, or says what to write instead.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { UnknownNameError, nn, torch } from 'tensorfx'
import { OTHER_LIBRARIES } from '../../src/install/otherLibraries.ts'
import { entries } from '../fuzz/entries.ts'

const { names } = JSON.parse(readFileSync('test/goldens/names/names.json', 'utf8')) as { readonly names: Readonly<Record<string, readonly string[]>> }

const HOMES: Readonly<Record<string, object>> = {
  torch,
  'torch.nn': torch.nn,
  'torch.nn.utils': nn.utils,
  'torch.nn.init': nn.init,
  'torch.optim': torch.optim,
  'torch.linalg': torch.linalg,
  'torch.autograd': torch.autograd,
  'torch.nn.functional': nn.functional,
}

/** What reading a name says, or null if nothing. */
function said(home: object, name: string): string | null {
  try {
    Reflect.get(home, name)
    return null
  } catch (error) {
    if (!(error instanceof UnknownNameError)) throw error
    return error.message
  }
}

it.each(Object.entries(names))('each public name of %s exists, or says what to write', (path, listed) => {
  const home = HOMES[path] ?? {}
  expect(listed.length).toBeGreaterThan(5)
  const silent = listed.filter((name) => !(name in home) && said(home, name) === null)
  expect(silent).toEqual([])
})

it('absent namespaces say the same in both spellings, and `in` stays a test of what there is', () => {
  for (const name of ['hub', 'profiler', 'utils', 'cuda', 'mps', 'onnx', 'distributed', 'distributions', 'jit']) {
    expect(name in torch, name).toBe(false)
    expect(said(torch, name), name).toMatch(new RegExp(`^torch\\.${name} does not exist here: .*\\.$`))
  }
  for (const name of ['multiprocessing', 'sparse', 'quantization', 'ao', 'export', 'save', 'load', 'nested', 'vision'])
    expect(said(torch, name), name).toMatch(' does not exist here: ')
  expect(said(torch, 'fromNumpy')).toBe('torch.fromNumpy does not exist here: torch.tensor(typedArray) copies a typed array.')
  expect(said(torch, 'from_numpy')).toBe('torch.from_numpy does not exist here: torch.tensor(typedArray) copies a typed array.')
  expect(said(torch, 'somethingElse')).toBe(null)
})

/** Each `name` in a message that is written as a member of torch or nn. */
const MENTIONED = /\b(?:torch|nn|optim|x|model|sequential|optimizer|loss)(?:\.\w+)+/g

/** Whether what a message names is there: members of torch, nn and optim, methods of tensors, modules and optimizers, and imports. */
async function checkMentions(text: string): Promise<void> {
  const model = new nn.Sequential(new nn.Linear(2, 2))
  const roots: Readonly<Record<string, object>> = {
    torch,
    nn,
    optim: torch.optim,
    x: torch.ones([2, 3]),
    model,
    sequential: model,
    optimizer: new torch.optim.SGD(model.parameters()),
    loss: torch.ones([]),
  }
  for (const [mention] of text.matchAll(MENTIONED)) {
    const [root = '', ...parts] = mention.split('.')
    let value: unknown = roots[root]
    for (const part of parts) value = Reflect.get(Object(value), part)
    expect(value, `${mention} in ${text}`).toBeDefined()
  }
  for (const [, imported = '', from = ''] of text.matchAll(/import \{ (\w+) \} from '([^']+)'/g))
    expect(await load(from), text).toHaveProperty(imported)
  for (const [, from = ''] of text.matchAll(/(?:import from|of) '(tensorfx[^']*)'/g)) expect(await load(from), text).toBeDefined()
}

const load = (from: string): Promise<unknown> =>
  from === 'tensorfx/interop/onnx'
    ? import('tensorfx/interop/onnx')
    : (entries[from.replace('tensorfx/', '')]?.() ?? Promise.reject(new Error(`no entry '${from}'`)))

it('what the messages name exists', async () => {
  for (const [path, listed] of Object.entries(names))
    for (const name of listed) await checkMentions(said(HOMES[path] ?? {}, name)?.replace(/^\S+ (?:does not exist(?: here)?[:;]?|is) /, '') ?? '')
})

it('names of other libraries are not names that exist, and what their messages name exists', async () => {
  const model = new nn.Sequential(new nn.Linear(2, 2))
  const homes: Readonly<Record<keyof typeof OTHER_LIBRARIES, object>> = {
    torch,
    nn: torch.nn,
    optim: torch.optim,
    tensor: torch.ones([2, 3]),
    module: model,
    optimizer: new torch.optim.SGD(model.parameters()),
  }
  for (const [home, table] of Object.entries(OTHER_LIBRARIES))
    for (const [name, instead] of Object.entries<string>(table)) {
      expect(name in homes[home as keyof typeof OTHER_LIBRARIES], `${home}.${name}`).toBe(false)
      await checkMentions(instead)
    }
})

it('SparseAdam and sparse gradients of embeddings are refused (difference: no-sparse-adam)', () => {
  expect(said(torch.optim, 'SparseAdam')).toBe('torch.optim.SparseAdam does not exist here: there are no sparse gradients here; write optim.Adam.')
  expect(() => Reflect.construct(nn.Embedding, [3, 2, { sparse: true }])).toThrow("nn.Embedding: unknown option 'sparse'")
  const embedding = new nn.Embedding(3, 2)
  embedding(torch.tensor([1]).long())
    .sum()
    .backward()
  expect(embedding.weight.grad?.toArray()).toEqual([
    [0, 0],
    [1, 1],
    [0, 0],
  ])
})

it('code that messages write computes', () => {
  const x = torch.arange(6).reshape(2, 3).float()
  expect(x.slice(0, 1, 2).toArray()).toEqual([[3, 4, 5]])
  expect(torch.pow(torch.tensor([8]), 1 / 3).item()).toBeCloseTo(2)
  expect(torch.div(torch.tensor([-7]), torch.tensor([2]), { roundingMode: 'floor' }).item()).toBe(-4)
  expect(
    torch
      .zeros([2])
      .indexAdd(0, torch.tensor([0, 1, 0]).long(), torch.tensor([1, 2, 4]))
      .toArray(),
  ).toEqual([5, 2])
  expect(x.index([torch.tensor([1, 0]).long(), torch.tensor([2, 0]).long()]).toArray()).toEqual([5, 0])
  expect(x.amax().sub(x.amin()).item()).toBe(5)
  expect(torch.indexPut(x, [torch.tensor([0]).long()], torch.tensor([7])).toArray()).toEqual([
    [7, 7, 7],
    [3, 4, 5],
  ])
})
