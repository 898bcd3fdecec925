// What a checkpoint says of itself, and its state as JSON: among the texts of a safetensors file, or in the manifest of a folder that several ranks wrote.
import { ArgumentError } from '../errors/index.ts'
import type { Safetensors } from '../interop/safetensors.ts'
import { VERSION } from '../version.ts'

const FORMAT = 'tensorfx-checkpoint'
/** Grows when older versions cannot read what newer ones write. */
const FORMAT_VERSION = 1

/** What a checkpoint says of itself. */
export interface About {
  readonly score: number | null
  readonly mode: 'min' | 'max'
}

export const metadataOf = (json: unknown, { score, mode }: About): Record<string, string> => ({
  format: FORMAT,
  version: String(FORMAT_VERSION),
  tensorfx: VERSION,
  ...(score === null ? {} : { score: String(score), mode }),
  state: JSON.stringify(json),
})

/** What the texts of a checkpoint say. Throws ArgumentError for those of another kind, and of a newer version. */
export function readMetadata(where: string, metadata: Safetensors['metadata']): { readonly about: About; readonly state: string } {
  const { format, version, state, score, mode, tensorfx } = metadata
  if (format !== FORMAT || state === undefined)
    throw new ArgumentError(
      `${where}: this file holds tensors, but is no checkpoint that saveCheckpoint wrote. loadSafetensors of 'tensorfx/interop' reads it.`,
    )
  if (!(Number(version) <= FORMAT_VERSION))
    throw new ArgumentError(
      `${where}: the checkpoint has version ${version ?? '?'}, written by tensorfx ${tensorfx ?? '?'}; this is tensorfx ${VERSION}, which reads versions up to ${FORMAT_VERSION}. Update tensorfx.`,
    )
  return { about: { score: score === undefined ? null : Number(score), mode: mode === 'max' ? 'max' : 'min' }, state }
}
