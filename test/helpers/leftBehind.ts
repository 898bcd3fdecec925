// Test files share processes: after each file, what belongs to the whole process must be as it was before.
import { afterAll, expect } from 'vitest'
import { torch } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { fileStore } from 'tensorfx/debug'

const files = new Map<unknown, number>()
/** A number for an object, the same each time. */
const numberOf = (value: unknown): number => {
  if (!files.has(value)) files.set(value, files.size)
  return files.get(value) ?? 0
}

const state = (): object => ({
  fileStore: numberOf(fileStore()),
  config: { ...config },
  defaultDtype: torch.getDefaultDtype(),
  gradMode: torch.isGradEnabled(),
  environment: { ...process.env },
  folder: process.cwd(),
})

const before = state()
// The file's own hooks run before this one.
afterAll(() => expect(state(), 'what the file left behind').toEqual(before))
