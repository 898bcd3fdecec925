// What stands around a model is loaded by the programs that import it, and by no others: which rooms of the built package a bundle of one entry holds.
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { root } from './node.ts'

/** The rooms that this is about: the others hold tensors, operators and what these need. */
const ROOMS = ['data', 'checkpoint', 'train', 'distributions', 'models', 'vision', 'distributed', 'optim', 'dynamo', 'inductor']

/** What each entry loads of them. */
const entries: Readonly<Record<string, readonly string[]>> = {
  core: [],
  // An image folder decodes its images, and DistributedSampler asks for the rank.
  data: ['data', 'vision', 'distributed'],
  checkpoint: ['checkpoint'],
  distributions: ['distributions'],
  models: ['models'],
  vision: ['vision'],
  // fit saves, asks for the rank, and compiles its step; its data can be any iterable.
  train: ['train', 'checkpoint', 'distributed', 'optim', 'dynamo', 'inductor'],
}

/** The files of dist in a bundle of an entry, with the bytes that are left of each. */
async function filesOf(entry: string): Promise<ReadonlyMap<string, number>> {
  const { metafile } = await build({
    stdin: { contents: `import * as all from 'tensorfx/${entry}'; console.log(all)`, resolveDir: root, loader: 'js' },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    write: false,
    metafile: true,
    logLevel: 'error',
    tsconfigRaw: {},
  })
  const [output] = Object.values(metafile.outputs)
  return new Map(
    Object.entries(output?.inputs ?? {}).flatMap(([path, { bytesInOutput }]) => {
      const [, file] = /\bdist\/(.+)$/.exec(path) ?? []
      return file === undefined || bytesInOutput === 0 ? [] : [[file, bytesInOutput] as const]
    }),
  )
}

describe.each(Object.entries(entries))('a bundle of tensorfx/%s', (entry, rooms) => {
  it('holds the rooms that it needs, and no other', async () => {
    const files = await filesOf(entry)
    expect(files.size).toBeGreaterThan(50)
    const held = new Set([...files.keys()].map((file) => file.slice(0, file.indexOf('/'))))
    expect(ROOMS.filter((room) => held.has(room)).toSorted()).toEqual(rooms.toSorted())
  })
})

it('tensorfx/core holds no operator of complex numbers, no Fourier transform, no autocast and no scaler: of complex numbers it has the dtypes, and how their elements are read', async () => {
  const around = [...(await filesOf('core')).keys()].filter((file) => /complex|fft|autocast|scaler|random/i.test(file))
  expect(around).toEqual(['tensor/complexNumbers.js'])
})

it('tensorfx/core holds no threads, and none of the kernels that only gradients take', async () => {
  const left = [...(await filesOf('core')).keys()].filter((file) => /threads|backward|directWeight|winogradWeight\.|weightScheduled/i.test(file))
  expect(left).toEqual(['kernels/engine/threads.js'])
})
