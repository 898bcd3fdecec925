// npm run fuzz:heap -- N [seed]
import { fuzzHeapMany, heapApi } from './heap.mjs'

const [count = 1000, seed = Date.now() % 1e9] = process.argv.slice(2).map(Number)
const dist = (entry) => import(new URL(`../../dist/${entry === 'tensorfx' ? 'index' : `entries/${entry}`}.js`, import.meta.url).href)
console.log(`fuzz:heap: ${count} programs, seed ${seed}`)
const { before, after } = await fuzzHeapMany(await heapApi(dist), count, seed)
console.log(`no findings; ${before} bytes in use before, ${after} after`)
