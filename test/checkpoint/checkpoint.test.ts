// saveCheckpoint and loadCheckpoint.
import { existsSync, mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import { checkpointBlob, loadCheckpoint, saveCheckpoint } from 'tensorfx/checkpoint'
import { DataLoader } from 'tensorfx/data'
import { readSafetensors } from 'tensorfx/interop'
import { removeFolder } from '../helpers/folder.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tensorfx-checkpoint-'))
})
afterEach(() => {
  vi.restoreAllMocks()
  removeFolder(folder)
})

/** A training with every part. Its numbers depend on all of them. */
function training() {
  const model = new nn.Sequential(new nn.Linear(3, 4), new nn.BatchNorm1d(4), new nn.Dropout(0.3), new nn.Linear(4, 1))
  const optimizer = new optim.Adam(model.parameters(), { lr: 0.1 })
  const schedule = new optim.StepLR(optimizer, 2)
  const plateau = new optim.ReduceLROnPlateau(optimizer, { patience: 1 })
  const generator = new torch.Generator(9)
  const loader = new DataLoader(
    Array.from({ length: 7 }, (_, i) => torch.full([3], i)),
    { batchSize: 2, shuffle: true, dropLast: true, generator: new torch.Generator(2) },
  )
  const state = { model, optimizer, schedulers: { schedule, plateau }, generators: [generator], data: loader }
  /** Trains for some steps, within a pass or over several, and returns the losses. */
  async function run(steps: number): Promise<number[]> {
    const losses: number[] = []
    while (losses.length < steps)
      for await (const x of loader) {
        optimizer.zeroGrad()
        const loss = model(x.add(torch.rand([1], { generator })))
          .square()
          .mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        plateau.step(loss.item())
        losses.push(loss.item())
        if (losses.length === steps) break
      }
    return losses
  }
  return { state, run }
}

describe('a training', () => {
  it('goes on with the same numbers, from any step, by a file, a folder, bytes and a Blob', async () => {
    torch.manualSeed(1)
    const { state, run } = training()
    for (const steps of [1, 3, 4]) {
      await run(steps)
      const path = (await saveCheckpoint(join(folder, 'a.safetensors'), state, {})) ?? ''
      await saveCheckpoint(join(folder, 'many'), state)
      const blob = checkpointBlob(state)
      // The loader goes on within this pass only in a new program.
      for (const source of [path, join(folder, 'many'), readFileSync(path), blob]) {
        torch.manualSeed(77)
        const other = training()
        await other.run(2)
        const loaded = await loadCheckpoint(source, other.state)
        expect(loaded?.score).toBe(null)
        const [same] = [training()]
        await loadCheckpoint(path, same.state)
        const expected = await same.run(6)
        await loadCheckpoint(path, other.state)
        expect(await other.run(6)).toEqual(expected)
      }
      // Goes on from the checkpoint itself.
      await loadCheckpoint(path, state)
    }
  })

  it('is the same as one that was not interrupted', async () => {
    const runs: number[][] = []
    for (const stop of [0, 2, 5]) {
      torch.manualSeed(3)
      let { state, run } = training()
      const losses = stop === 0 ? [] : await run(stop)
      if (stop > 0) {
        await saveCheckpoint(folder, state)
        ;({ state, run } = training())
        torch.manualSeed(1000)
        await loadCheckpoint(folder, state)
      }
      runs.push([...losses, ...(await run(9 - stop))])
    }
    expect(runs[1]).toEqual(runs[0])
    expect(runs[2]).toEqual(runs[0])
  })
})

describe('what a file holds', () => {
  it('is any nested value, and each tensor once', async () => {
    const weight = torch.randn([3])
    const extra = {
      step: 3,
      list: [NaN, -0, Infinity, 2n ** 70n, undefined, null],
      map: new Map<unknown, unknown>([[1, { $tensor: 'x', $$: 1 }]]),
      weight,
      again: weight,
      __: '\u{1f600}',
    }
    await saveCheckpoint(join(folder, 'x.safetensors'), { extra })
    const loaded = await loadCheckpoint<typeof extra>(join(folder, 'x.safetensors'))
    expect({ ...loaded?.extra, weight: 0, again: 0 }).toEqual({ ...extra, weight: 0, again: 0 })
    expect(torch.equal(loaded?.extra.again ?? weight.add(1), weight)).toBe(true)
    const { tensors, metadata } = readSafetensors(readFileSync(join(folder, 'x.safetensors')))
    expect([...tensors.keys()]).toEqual(['extra.weight'])
    expect([metadata['format'], metadata['version']]).toEqual(['tensorfx-checkpoint', '1'])
  })

  it('is no function, and the message names the place', async () => {
    await expect(saveCheckpoint(folder, { extra: { a: [{ f: () => 1 }] } })).rejects.toThrow('saveCheckpoint: extra.a.0.f is ')
    await expect(saveCheckpoint(folder, { model: {} as never })).rejects.toThrow("saveCheckpoint: 'model' must be a Module")
    await expect(saveCheckpoint(folder, { optimizer: [3] as never })).rejects.toThrow("'optimizer.0' must have stateDict and loadStateDict")
    await expect(saveCheckpoint(folder, { modle: 1 } as never)).rejects.toThrow("did you mean 'model'?")
    expect(readdirSync(folder)).toEqual([])
  })

  it('can be a part of the training only', async () => {
    const { state } = training()
    await saveCheckpoint(folder, { model: state.model })
    const other = training()
    await loadCheckpoint(folder, { model: other.state.model })
    expect(torch.equal(other.state.model.stateDict().get('0.weight') as never, state.model.stateDict().get('0.weight') as never)).toBe(true)
    await expect(loadCheckpoint(folder, { optimizer: other.state.optimizer })).rejects.toThrow(
      "the checkpoint has no 'optimizer'; it has random, model.",
    )
  })
})

describe('a folder', () => {
  const names = (): string[] => readdirSync(folder).sort()
  const file = (number: number): string => `checkpoint-${String(number).padStart(8, '0')}.safetensors`

  it('keeps the newest and the best', async () => {
    for (const [number, score] of [5, 1, 4, NaN, 3, 2].entries()) await saveCheckpoint(folder, { extra: number }, { keep: 2, score })
    expect(names()).toEqual([2, 5, 6].map(file))
    expect((await loadCheckpoint(folder))?.extra).toBe(5)
    expect(await loadCheckpoint(folder, {}, { which: 'best' })).toMatchObject({ extra: 1, score: 1, path: join(folder, file(2)) })
    await saveCheckpoint(folder, { extra: 'x' }, { keep: 1, score: 9, mode: 'max', number: 40 })
    expect(names()).toContain(file(40))
  })

  it('without checkpoints, or not there yet, gives null', async () => {
    expect(await loadCheckpoint(folder)).toBe(null)
    expect(await loadCheckpoint(join(folder, 'none'))).toBe(null)
    await expect(loadCheckpoint(join(folder, 'none.safetensors'))).rejects.toThrow('could not be read')
  })

  it('has only whole files, and what a failed write left goes with the next one', async () => {
    await saveCheckpoint(folder, { extra: 1 })
    const fs = process.getBuiltinModule('node:fs')
    for (const name of ['writeSync', 'fsyncSync', 'renameSync'] as const) {
      const broken = vi.spyOn(fs, name).mockImplementation(() => {
        throw new Error('no space left')
      })
      await expect(saveCheckpoint(folder, { extra: 2 }), name).rejects.toThrow('no space left')
      broken.mockRestore()
      expect((await loadCheckpoint(folder))?.extra, name).toBe(1)
    }
    await saveCheckpoint(folder, { extra: 3 }, { number: 9 })
    expect(names()).toEqual([file(1), file(9)])
  })
})

describe('loading', () => {
  it('changes nothing if a part refuses its state', async () => {
    const { state, run } = training()
    await run(3)
    await saveCheckpoint(folder, state)
    const other = training()
    await other.run(2)
    const wrong = new nn.Linear(5, 5)
    const two = join(folder, 'two')
    await saveCheckpoint(two, { model: [state.model, new nn.Linear(5, 4)] })
    const before = checkpointBlob(other.state)
    await expect(loadCheckpoint(folder, { ...other.state, model: wrong })).rejects.toThrow('Error(s) in loading stateDict for Linear')
    await expect(loadCheckpoint(folder, { ...other.state, data: new DataLoader([1]) })).rejects.toThrow('make it with the same options')
    // The first model has been loaded when the second one refuses its state.
    await expect(loadCheckpoint(two, { model: [other.state.model, wrong] })).rejects.toThrow('Error(s) in loading stateDict for Linear')
    const contents = async (blob: Blob): Promise<unknown> => {
      const { tensors, metadata } = readSafetensors(new Uint8Array(await blob.arrayBuffer()))
      return [[...tensors].map(([name, x]) => [name, x.toArray()]), metadata]
    }
    expect(await contents(checkpointBlob(other.state))).toEqual(await contents(before))
  })

  it('refuses files of other kinds, newer versions and damaged ones', async () => {
    const path = join(folder, 'x.safetensors')
    await saveCheckpoint(path, { extra: 1, model: new nn.Linear(2, 2) })
    const whole = readFileSync(path)
    const text = whole.toString('latin1')
    writeFileSync(path, text.replace('"version":"1"', '"version":"2"'), 'latin1')
    await expect(loadCheckpoint(path)).rejects.toThrow('the checkpoint has version 2, written by tensorfx 0.1.0; this is tensorfx')
    writeFileSync(path, text.replace('tensorfx-checkpoint', 'tensorfx-checkpoimt'), 'latin1')
    await expect(loadCheckpoint(path)).rejects.toThrow('is no checkpoint that saveCheckpoint wrote')
    await expect(loadCheckpoint(whole.subarray(0, whole.length - 4))).rejects.toThrow(/safetensors/)
    for (let at = 8; at < text.indexOf('}}}') && at < whole.length; at += 5) {
      const damaged = Uint8Array.from(whole)
      damaged[at] = (damaged[at] ?? 0) ^ 0x15
      await loadCheckpoint(damaged).catch((error: unknown) => expect(error).toHaveProperty('code', 'TFX_ARGUMENT'))
    }
  })
})

it('a handle of a file in a browser is written whole, or not at all', async () => {
  const parts: Uint8Array[] = []
  let ends = ''
  const handle = (fails: boolean): Parameters<typeof saveCheckpoint>[0] => ({
    createWritable: () =>
      Promise.resolve({
        write: (data) => (fails ? Promise.reject(new Error('quota')) : Promise.resolve(void parts.push(Uint8Array.from(data)))),
        close: () => Promise.resolve(void (ends += 'close ')),
        abort: () => Promise.resolve(void (ends += 'abort ')),
      }),
  })
  expect(await saveCheckpoint(handle(false), { extra: 4 })).toBe(null)
  expect((await loadCheckpoint(Buffer.concat(parts)))?.extra).toBe(4)
  await expect(saveCheckpoint(handle(true), { extra: 4 })).rejects.toThrow('quota')
  expect(ends).toBe('close abort ')
})

it('tensors are written one after the other, without a second copy of all', async () => {
  const extra = Array.from({ length: 12 }, () => torch.zeros([250_000]))
  const fs = process.getBuiltinModule('node:fs')
  const sizes: number[] = []
  const usual = fs.writeSync
  vi.spyOn(fs, 'writeSync').mockImplementation(((fd: number, data: Uint8Array, at: number) => {
    sizes.push(data.length)
    return usual(fd, data, at)
  }) as never)
  await saveCheckpoint(join(folder, 'x.safetensors'), { extra })
  expect(Math.max(...sizes)).toBe(1_000_000)
  expect(statSync(join(folder, 'x.safetensors')).size).toBeGreaterThan(12_000_000)
  expect(existsSync(join(folder, 'x.safetensors.draft'))).toBe(false)
})
