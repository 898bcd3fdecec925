// Mutants of a repro's archive are read as what they say, or refused with an error of tensorfx; nothing runs, and no name leads out of the folder.
// TENSORFX_MUTANTS=100000 npx vitest run test/cli/archiveMutants.test.ts tries more.
import { gunzipSync, gzipSync } from 'node:zlib'
import { packTar, unpackTar } from 'modern-tar'
import { expect, it } from 'vitest'
import { diceOf } from '../../scripts/fuzz/files/dice.mjs'
import type { Dice } from '../../scripts/fuzz/files/dice.mjs'
import { mutateBytes, mutateValue, toEntries, toText } from '../../scripts/fuzz/files/mutate.mjs'
import { isSafePath, packArchive, readArchive } from '../../src/cli/repro/archive.ts'
import { TensorfxError } from '../../src/errors/index.ts'

const MUTANTS = Number(process.env['TENSORFX_MUTANTS'] ?? 600)
const utf8 = new TextEncoder()

const unknown = { node: undefined, v8: undefined, platform: undefined, execArgv: undefined, env: undefined }

const original = (): Promise<Uint8Array> =>
  packArchive(
    {
      script: 'repro.mjs',
      written: { ...unknown, tensorfx: '0.1.0', node: 'v20.0.0' },
      packed: { ...unknown, tensorfx: '0.1.0', env: { TENSORFX_THREADS: '2' } },
      config: { reproTolerance: 0.01 },
      modules: ['modules/mine.mjs'],
      missing: ['a package'],
      needsBackend: false,
    },
    new Map([
      ['repro.mjs', utf8.encode('throw new Error("it ran")')],
      ['modules/mine.mjs', utf8.encode('export const mine = 1')],
      ['storages/0a0b', new Uint8Array(64).fill(7)],
    ]),
  )

/** One of: other bytes in the file, in the tar file, or in the description, whose other files stay. */
async function mutant(dice: Dice, archive: Uint8Array): Promise<Uint8Array> {
  const tar = gunzipSync(archive)
  switch (dice.below(3)) {
    case 0:
      return mutateBytes(dice, archive)
    case 1:
      return gzipSync(mutateBytes(dice, tar))
    default: {
      const entries = (await unpackTar(tar)).map(({ header, data = new Uint8Array() }) => ({ header, body: data }))
      const [description, ...rest] = entries
      const manifest: unknown = JSON.parse(new TextDecoder().decode(description?.body))
      const body = utf8.encode(toText(mutateValue(dice, toEntries(manifest))))
      return gzipSync(await packTar([{ header: { name: 'repro.json', size: body.length, type: 'file' }, body }, ...rest]))
    }
  }
}

it(`${MUTANTS} mutants are read as what they say, or refused`, { timeout: 3_600_000 }, async () => {
  const archive = await original()
  const counts = { read: 0, refused: 0 }
  for (let index = 0; index < MUTANTS; index++) {
    const bytes = await mutant(diceOf(1, index), archive)
    const start = process.cpuUsage()
    try {
      const { manifest, files } = await readArchive(bytes)
      counts.read++
      expect([...files.keys()].every(isSafePath), `mutant ${index}`).toBe(true)
      expect([...files.keys()].toSorted(), `mutant ${index}`).toEqual(Object.keys(manifest.files).toSorted())
      expect(files.has(manifest.script), `mutant ${index}`).toBe(true)
    } catch (error) {
      if (!(error instanceof TensorfxError)) throw new Error(`mutant ${index} ended in a raw error`, { cause: error })
      counts.refused++
    }
    const { user, system } = process.cpuUsage(start)
    expect(user + system, `microseconds of mutant ${index}`).toBeLessThan(2e6)
  }
  expect(Reflect.ownKeys(Object.prototype)).toHaveLength(12)
  // Otherwise the mutants test nothing.
  expect(counts.read).toBeGreaterThan(MUTANTS / 50)
  expect(counts.refused).toBeGreaterThan(MUTANTS / 3)
})
