// Every public name of PyTorch's namespaces (1.13, recorded by scripts/names/record.py) exists here, or says what to write instead.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { UnknownNameError, nn, torch } from 'tensorfx'

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
  for (const name of ['hub', 'amp', 'autocast', 'profiler', 'utils', 'cuda', 'backends', 'fft', 'onnx', 'distributed', 'distributions', 'jit']) {
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
const MENTIONED = /\b(?:torch|nn|optim)(?:\.\w+)+/g

it('what the messages name exists', () => {
  const roots: Readonly<Record<string, object>> = { torch, nn, optim: torch.optim }
  for (const [path, listed] of Object.entries(names))
    for (const name of listed) {
      const text = said(HOMES[path] ?? {}, name)?.replace(/^\S+ (?:does not exist(?: here)?[:;]?|is) /, '') ?? ''
      for (const [mention] of text.matchAll(MENTIONED)) {
        const [root = '', ...parts] = mention.split('.')
        let value: unknown = roots[root]
        for (const part of parts) value = Reflect.get(Object(value), part)
        expect(value, `${mention} in ${text}`).toBeDefined()
      }
      for (const [, imported = '', from = ''] of text.matchAll(/import \{ (\w+) \} from '([^']+)'/g))
        expect(imported !== '' && from.startsWith('tensorfx')).toBe(true)
    }
})
