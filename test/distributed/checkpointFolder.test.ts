// Checkpoints that ranks write, here by one rank: what counts as whole, what is refused, and what stays.
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Tensor, nn, optim, torch } from 'tensorfx'
import { loadCheckpoint, saveCheckpoint } from 'tensorfx/checkpoint'
import { destroyProcessGroup, initProcessGroup, newGroup } from 'tensorfx/distributed'
import type { ProcessGroup } from 'tensorfx/distributed'
import { removeFolder } from '../helpers/folder.ts'

let folder = ''
let group: ProcessGroup | null = null
beforeAll(async () => {
  await initProcessGroup({ backend: 'single' })
  group = newGroup([0])
})
afterAll(() => destroyProcessGroup())
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tensorfx-test-checkpoint-'))
})
afterEach(() => removeFolder(folder))

const together = (): { readonly group: ProcessGroup } => {
  if (group === null) throw new Error('there is no group')
  return { group }
}

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
const place = (number: number): string => join(folder, `checkpoint-${String(number).padStart(8, '0')}`)

describe('a checkpoint', () => {
  test('goes on with the same numbers: parameters, buffers, the optimizer and the generator of random numbers', async () => {
    const whole = makeState()
    whole.train(2)
    const { model, optimizer } = whole
    expect(await saveCheckpoint(folder, { model, optimizer, extra: { step: 2, note: 'a' } }, { ...together(), score: 0.25 })).toBe(place(1))
    whole.train(3)

    for (const options of [together(), {}]) {
      const resumed = makeState()
      torch.manualSeed(99)
      expect(await loadCheckpoint(folder, { model: resumed.model, optimizer: resumed.optimizer }, options)).toEqual({
        path: place(1),
        score: 0.25,
        extra: { step: 2, note: 'a' },
      })
      resumed.train(3)
      expect(numbers(resumed.model)).toEqual(numbers(whole.model))
    }
  })

  test('is null where there is none', async () => {
    const { model } = makeState()
    expect(await loadCheckpoint(join(folder, 'nothing'), { model }, together())).toBeNull()
    expect(await loadCheckpoint(folder, { model }, together())).toBeNull()
  })

  test.each([
    ['without a manifest', (path: string) => rmSync(join(path, 'manifest.json'))],
    ['with a file that is cut off', (path: string) => truncateSync(join(path, 'rank-0.safetensors'), 100)],
    ['without a file', (path: string) => rmSync(join(path, 'rank-0.safetensors'))],
  ])('%s does not count: the one before is loaded', async (_name, damage) => {
    const { model, optimizer, train } = makeState()
    await saveCheckpoint(folder, { model, optimizer, extra: 1 }, together())
    const before = numbers(model)
    train(1)
    await saveCheckpoint(folder, { model, optimizer, extra: 2 }, together())
    damage(newest())
    expect(await loadCheckpoint(folder, { model, optimizer }, together())).toMatchObject({ path: place(1), extra: 1 })
    expect(numbers(model)).toEqual(before)
    // The next one has a new number, and what was cut off goes.
    expect(await saveCheckpoint(folder, { model, optimizer }, together())).toBe(place(3))
    expect(readdirSync(folder).toSorted()).toEqual(['checkpoint-00000001', 'checkpoint-00000003'])
  })

  test('stays until newer ones are whole, and the best one longer; one process and several ranks share a folder', async () => {
    const { model } = makeState()
    for (const [i, score] of [3, 1, 2, 4, 5].entries())
      await saveCheckpoint(folder, { model, extra: i }, { ...(i % 2 === 0 ? together() : {}), keep: 2, score })
    expect(readdirSync(folder).toSorted()).toEqual(['checkpoint-00000002.safetensors', 'checkpoint-00000004.safetensors', 'checkpoint-00000005'])
    expect(await loadCheckpoint(folder, { model }, { which: 'best' })).toMatchObject({ extra: 1, score: 1 })
    expect(await loadCheckpoint(folder, { model })).toMatchObject({ extra: 4, path: place(5) })
    await saveCheckpoint(folder, { model }, { ...together(), keep: 1, score: 0 })
    expect(readdirSync(folder)).toEqual(['checkpoint-00000006'])
    expect(readdirSync(newest()).toSorted()).toEqual(['manifest.json', 'rank-0.safetensors'])
  })

  test('with the number of another takes its place when it is whole', async () => {
    const { model } = makeState()
    for (const extra of [1, 2, 3]) {
      expect(await saveCheckpoint(folder, { model, extra }, { ...together(), number: 7 })).toBe(extra === 1 ? place(7) : `${place(7)}.${extra}`)
      expect(readdirSync(folder)).toHaveLength(1)
      expect(await loadCheckpoint(folder, { model })).toMatchObject({ extra })
    }
    const file = await saveCheckpoint(folder, { model, extra: 4 }, { number: 7 })
    expect([readdirSync(folder).length, await loadCheckpoint(folder, { model })]).toMatchObject([1, { extra: 4, path: file }])
  })

  test('of another model is refused, and nothing is loaded', async () => {
    const { model, optimizer } = makeState()
    await saveCheckpoint(folder, { model, optimizer }, together())
    const other = makeState(4)
    const before = numbers(other.model)
    for (const options of [together(), {}])
      await expect(loadCheckpoint(folder, { model: other.model, optimizer: other.optimizer }, options)).rejects.toThrow(/shape/)
    expect(numbers(other.model)).toEqual(before)
    expect(other.optimizer.state.size).toBe(0)
  })

  test('of one process is loaded by ranks, if the optimizer has the same groups', async () => {
    const { model, optimizer, train } = makeState()
    train(2)
    await saveCheckpoint(folder, { model, optimizer })
    train(2)
    const other = makeState()
    await loadCheckpoint(folder, { model: other.model, optimizer: other.optimizer }, together())
    other.train(2)
    expect(numbers(other.model)).toEqual(numbers(model))
    const parameters = [...other.model.parameters()]
    const groups = new optim.AdamW([{ params: parameters.slice(0, 2) }, { params: parameters.slice(2) }])
    await expect(loadCheckpoint(folder, { model: other.model, optimizer: groups }, together())).rejects.toThrow(
      /groups of 6 parameters, the optimizer groups of 2, 4/,
    )
  })

  test('without an optimizer cannot be loaded into one', async () => {
    const { model, optimizer } = makeState()
    await saveCheckpoint(folder, { model }, together())
    await expect(loadCheckpoint(folder, { model, optimizer }, together())).rejects.toThrow("the checkpoint has no 'optimizer'; it has model, random.")
    expect((await loadCheckpoint(folder, { model }, together()))?.path).toBe(place(1))
  })

  test('whose manifest is damaged says where', async () => {
    const { model } = makeState()
    await saveCheckpoint(folder, { model }, together())
    const file = join(newest(), 'manifest.json')
    const text = readFileSync(file, 'utf8')
    const load = (changed: string): Promise<unknown> => {
      writeFileSync(file, changed)
      return loadCheckpoint(folder, { model }, together())
    }
    await expect(load(text.replace('"offsets":[0', '"offsets":[7'))).rejects.toThrow(/the part of '.*' at \[7.*is not as the manifest says/)
    await expect(load(text.replace('"dtype":"float32"', '"dtype":"float99"'))).rejects.toThrow(/must be a dtype/)
    await expect(load('{')).rejects.toThrow(/manifest\.json is not JSON/)
    await expect(load(text.replace('"version":"1"', '"version":"2"'))).rejects.toThrow(/the checkpoint has version 2/)
  })
})

test('arguments are checked before anything is written', async () => {
  const { model, optimizer } = makeState()
  const save = (...args: readonly unknown[]): Promise<unknown> => Reflect.apply(saveCheckpoint, null, args)
  await expect(save(7, { model }, together())).rejects.toThrow(/argument 'target' must be a path/)
  await expect(save(`${folder}/a.safetensors`, { model }, together())).rejects.toThrow(/argument 'target' must be the path of a folder/)
  await expect(save(folder, { optimizer }, together())).rejects.toThrow(/'optimizer' trains no parameter of a model that is given/)
  await expect(save(folder, { model: [model, model], optimizer }, together())).rejects.toThrow(/'optimizer' trains parameters of 2 models/)
  await expect(save(folder, { model }, { group: 3 })).rejects.toThrow(/option 'group' must be a ProcessGroup, such as newGroup returns, got 3/)
  await expect(save(folder, { model }, { ...together(), keep: 0 })).rejects.toThrow(/keep must be an integer from 1 on, got 0/)
  await expect(save(folder, { model, extra: () => 1 }, together())).rejects.toThrow(/extra is a function/)
  expect(existsSync(place(1))).toBe(false)
})

test('a folder that cannot be made is an error', async () => {
  const { model } = makeState()
  writeFileSync(join(folder, 'file'), '')
  await expect(saveCheckpoint(join(folder, 'file', 'below'), { model }, together())).rejects.toThrow(/ENOTDIR/)
})
