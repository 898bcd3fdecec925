// npx vite examples/vit: as examples/browser, on the built package.
import { fileURLToPath } from 'node:url'
import browser from '../browser/vite.config.mjs'

export default { ...browser, plugins: [], root: fileURLToPath(new URL('.', import.meta.url)) }
