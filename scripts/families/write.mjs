// The middle step of the recording of families, see record.py: loads what PyTorch saved into each port, and writes it again.
//   node scripts/families/write.mjs FOLDER
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadTorchFile, writeSafetensors } from 'tensorfx/interop'
import { families } from '../../examples/families/index.mjs'

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('usage: node scripts/families/write.mjs FOLDER')
mkdirSync(folder, { recursive: true })
const goldens = fileURLToPath(new URL('../../test/goldens/families/', import.meta.url))

for (const [name, make] of Object.entries(families)) {
  const model = make()
  model.loadStateDict(await loadTorchFile(join(goldens, `${name}.pt`)))
  writeFileSync(join(folder, `${name}.safetensors`), writeSafetensors(model.stateDict({ names: 'pytorch' })))
}
