// Checkpoints of one process without a process group: what counts as whole, what is refused, and what stays.
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Tensor, nn, optim, torch } from 'tensorfx'
import { loadShardedCheckpoint, saveShardedCheckpoint } from 'tensorfx/distributed/checkpoint'
import { removeFolder } from '../helpers/folder.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tensorfx-test-checkpoint-'))
})
afterEach(() => removeFolder(folder))

function makeState(width = 3): { readonly model: nn.Module; readonly optimizer: optim.AdamW; readonly train: (steps: number) => void } {
  torch.manualSeed(0)
  const model = new nn.Sequential(new nn.Linear(2, width), new nn.BatchNorm1d(width), new nn.Dropout(0.5), new nn.Linear(width, 1))
  const optimizer = new optim.AdamW(model.parameters(), { lr: 0.1 })
  const train = (steps: number): void => {
    for (let i = 0; i < steps; i++) {
      optimizer.zeroGrad()
      model
        .call(torch.randn([4, 2]))
        .pow(2)
        .mean()
        .backward()
      optimizer.step()
    }
  }
  return { model, optimizer, train }
}

const numbers = (model: nn.Module): unknown => [...model.stateDict()].map(([name, t]) => [name, t instanceof Tensor ? t.toArray() : null])

const newest = (): string => join(folder, readdirSync(folder).toSorted().at(-1) ?? '')

describe('a checkpoint', () => {
  test('goes on with the same numbers: parameters, buffers, the optimizer and the generator of random numbers', () => {
    const whole = makeState()
    whole.train(2)
    expect(saveShardedCheckpoint(folder, { model: whole.model, optimizer: whole.optimizer }, { values: { step: 2, note: 'a' } })).toBe(1)
    whole.train(3)

    const resumed = makeState()
    torch.manualSeed(99)
    expect(loadShardedCheckpoint(folder, { model: resumed.model, optimizer: resumed.optimizer })).toEqual({
      number: 1,
      values: { step: 2, note: 'a' },
    })
    resumed.train(3)
    expect(numbers(resumed.model)).toEqual(numbers(whole.model))
  })

  test('is null where there is none', () => {
    const { model } = makeState()
    expect(loadShardedCheckpoint(join(folder, 'nothing'), { model })).toBeNull()
    expect(loadShardedCheckpoint(folder, { model })).toBeNull()
  })

  test.each([
    ['without a manifest', (path: string) => rmSync(join(path, 'manifest.json'))],
    ['with a file that is cut off', (path: string) => truncateSync(join(path, 'rank-0.safetensors'), 100)],
    ['without a file', (path: string) => rmSync(join(path, 'rank-0.safetensors'))],
  ])('%s does not count: the one before is loaded', (_name, damage) => {
    const { model, optimizer, train } = makeState()
    saveShardedCheckpoint(folder, { model, optimizer }, { values: { step: 1 } })
    const before = numbers(model)
    train(1)
    saveShardedCheckpoint(folder, { model, optimizer }, { values: { step: 2 } })
    damage(newest())
    expect(loadShardedCheckpoint(folder, { model, optimizer })).toEqual({ number: 1, values: { step: 1 } })
    expect(numbers(model)).toEqual(before)
    // The next one has a new number, and what was cut off goes.
    expect(saveShardedCheckpoint(folder, { model, optimizer })).toBe(3)
    expect(readdirSync(folder).toSorted()).toEqual(['checkpoint-00000001', 'checkpoint-00000003'])
  })

  test('stays until newer ones are whole: keep says how many', () => {
    const { model } = makeState()
    for (let i = 0; i < 4; i++) saveShardedCheckpoint(folder, { model }, { keep: 3 })
    expect(readdirSync(folder).toSorted()).toEqual(['checkpoint-00000002', 'checkpoint-00000003', 'checkpoint-00000004'])
    saveShardedCheckpoint(folder, { model }, { keep: 1 })
    expect(readdirSync(folder)).toEqual(['checkpoint-00000005'])
    expect(readdirSync(newest()).toSorted()).toEqual(['manifest.json', 'rank-0.safetensors'])
  })

  test('of another model is refused, and nothing is loaded', () => {
    const { model, optimizer } = makeState()
    saveShardedCheckpoint(folder, { model, optimizer })
    const other = makeState(4)
    const before = numbers(other.model)
    expect(() => loadShardedCheckpoint(folder, { model: other.model, optimizer: other.optimizer })).toThrow(/shape/)
    expect(numbers(other.model)).toEqual(before)
    expect(other.optimizer.state.size).toBe(0)
  })

  test('without an optimizer cannot be loaded into one', () => {
    const { model, optimizer } = makeState()
    saveShardedCheckpoint(folder, { model })
    expect(() => loadShardedCheckpoint(folder, { model, optimizer })).toThrow(
      /rank 0 cannot read .*the checkpoint holds no optimizer; load it without one/,
    )
    expect(loadShardedCheckpoint(folder, { model })?.number).toBe(1)
  })

  test('whose manifest is damaged says where', () => {
    const { model } = makeState()
    saveShardedCheckpoint(folder, { model })
    const file = join(newest(), 'manifest.json')
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replace('"offsets":[0', '"offsets":[7'))
    expect(() => loadShardedCheckpoint(folder, { model })).toThrow(/the part of '.*' at \[7.*is not as the manifest says/)
    writeFileSync(file, text.replace('float32', 'float99'))
    expect(() => loadShardedCheckpoint(folder, { model })).toThrow(/rank 0 cannot read .*expected a dtype|must be a dtype/)
    writeFileSync(file, '{')
    expect(() => loadShardedCheckpoint(folder, { model })).toThrow(/manifest\.json is not JSON/)
  })
})

test('arguments are checked before anything is written', () => {
  const { model } = makeState()
  const save =
    (...args: readonly unknown[]): (() => unknown) =>
    () =>
      Reflect.apply(saveShardedCheckpoint, null, args)
  expect(save(7, { model })).toThrow(/argument 'folder' must be a string, got 7/)
  expect(save(folder, {})).toThrow(/argument 'model' must be/)
  expect(save(folder, { model, optimiser: null })).toThrow(/unknown option 'optimiser'.*optimizer/)
  expect(save(folder, { model }, { keep: 0 })).toThrow(/keep must be an integer from 1 on, got 0/)
  expect(save(folder, { model }, { values: 3 })).toThrow(/argument 'values' must be an object of JSON, got 3/)
  expect(existsSync(join(folder, 'checkpoint-00000001'))).toBe(false)
})

test('a folder that cannot be made is an error of every rank', () => {
  const { model } = makeState()
  writeFileSync(join(folder, 'file'), '')
  expect(() => saveShardedCheckpoint(join(folder, 'file', 'below'), { model })).toThrow(/rank 0 cannot make a folder in .*ENOTDIR/)
})
