// The networks of examples/families against the same ones in PyTorch (scripts/families/record.py): weights that PyTorch saved load here under the names that PyTorch gave them, the port
// computes the same outputs and gradients, eager and compiled, and what is written here is, byte for byte, a file that PyTorch loaded back to the weights it had saved.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor, nn } from 'tensorfx'
import { loadTorchFile, writeSafetensors } from 'tensorfx/interop'
import { fromStored } from '../pytorch/cases.ts'
import type { StoredTensor } from '../pytorch/cases.ts'
import { example, runExample } from './run.ts'
import { tenth } from '../helpers/rotation.ts'

interface Recorded {
  readonly torch: string
  readonly inputs: readonly StoredTensor[]
  readonly outputs: readonly StoredTensor[]
  /** For each parameter that has a gradient: the sum of absolute values, and the sum with the weights cos(0.7 i + 1). */
  readonly gradients: Readonly<Record<string, readonly [number, number]>>
  readonly state: readonly (readonly [name: string, dtype: string, shape: readonly number[]])[]
  /** SHA-256 of the file that tensorfx wrote and PyTorch loaded. */
  readonly loaded: string
}

const { families } = (await import(example('families/index.mjs'))) as { readonly families: Readonly<Record<string, () => nn.Module>> }
const golden = (file: string): string => fileURLToPath(new URL(`../goldens/families/${file}`, import.meta.url))

const weights = (size: number, start: number, step = 0.7): Tensor => torch.arange(size, { dtype: 'float64' }).mul(step).add(start).cos()
const called = (model: unknown, inputs: readonly Tensor[]): Tensor[] =>
  [(model as (...given: readonly Tensor[]) => Tensor | Tensor[])(...inputs)].flat()

/** The loss that was differentiated: all outputs, each element with a weight of its own. */
const lossOf = (outputs: readonly Tensor[]): Tensor =>
  outputs
    .map((out, k) =>
      out
        .flatten()
        .mul(weights(out.numel, k + 1).float())
        .sum(),
    )
    .reduce((a, b) => a.add(b))

function summary(gradient: Tensor): readonly [number, number] {
  const flat = gradient.double().flatten()
  return [flat.abs().sum().item(), flat.mul(weights(flat.numel, 1)).sum().item()]
}

/** Parameters by the names that they have in PyTorch's files. */
function parametersOf(model: nn.Module): Map<string, Tensor> {
  const spelled = [...model.stateDict({ names: 'pytorch' }).keys()]
  const names = new Map([...model.stateDict().keys()].map((name, i) => [name, spelled[i] ?? name]))
  return new Map([...model.namedParameters()].map(([name, parameter]) => [names.get(name) ?? name, parameter]))
}

test('every family that was recorded is there, and twenty are', () => {
  expect(Object.keys(families).length).toBeGreaterThanOrEqual(20)
})

describe.each(tenth(Object.entries(families), ([name]) => name))('%s', (name, make) => {
  const recorded = JSON.parse(readFileSync(golden(`${name}.json`), 'utf8')) as Recorded
  const load = async (): Promise<nn.Module> => {
    const model = make()
    expect(model.loadStateDict(await loadTorchFile(golden(`${name}.pt`)))).toEqual({ missingKeys: [], unexpectedKeys: [] })
    model.eval()
    return model
  }

  it('has the names, dtypes and shapes of PyTorch’s state dict, in its order', () => {
    const own = [...make().stateDict({ names: 'pytorch' })].map(([key, t]) => [key, t.dtype, t.shape])
    expect(own).toEqual(recorded.state)
  })

  it('writes the file that PyTorch loaded', async () => {
    const model = await load()
    const file = writeSafetensors(model.stateDict({ names: 'pytorch' }))
    expect(createHash('sha256').update(file).digest('hex')).toBe(recorded.loaded)
  })

  it.each(['eager', 'compiled'])('computes PyTorch’s outputs and gradients: %s', async (mode) => {
    const model = await load()
    const outputs = called(mode === 'eager' ? model : compile(model), recorded.inputs.map(fromStored))
    expect(outputs.map((out) => out.shape)).toEqual(recorded.outputs.map((out) => out.shape))
    outputs.forEach((out, k) => {
      const wanted = fromStored(recorded.outputs[k] as StoredTensor)
      expect(out.sub(wanted).abs().max().item(), `output ${k}`).toBeLessThan(1e-5)
    })
    lossOf(outputs).backward()
    const gradients = [...parametersOf(model)].flatMap(([key, { grad }]) => (grad === null ? [] : [[key, summary(grad)] as const]))
    expect(gradients.map(([key]) => key).toSorted()).toEqual(Object.keys(recorded.gradients).toSorted())
    const largest = Math.max(...Object.values(recorded.gradients).map(([size]) => size))
    for (const [key, own] of gradients) {
      const [size, sum] = recorded.gradients[key] ?? [NaN, NaN]
      const tolerance = 1e-5 * size + 1e-7 * largest
      expect(Math.abs(own[0] - size), key).toBeLessThan(tolerance)
      expect(Math.abs(own[1] - sum), key).toBeLessThan(tolerance)
    }
  })
})

test('the program prints a line for each family, with a difference that is rounding', async () => {
  const lines = (await runExample('families/check.mjs')).trim().split('\n')
  expect(lines.map((line) => line.split(/\s+/)[0])).toEqual(Object.keys(families))
  for (const line of lines) expect(Number(/difference (\S+)/.exec(line)?.[1]), line).toBeLessThan(1e-5)
})
