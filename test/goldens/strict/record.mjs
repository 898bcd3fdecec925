import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { digestsOf } from './program.mjs'

const { compile, torch } = await import(pathToFileURL(resolve(process.argv[2], 'dist/index.js')))
writeFileSync(new URL('digests.json', import.meta.url), `${JSON.stringify(digestsOf({ torch, compiled: compile }), null, 2)}\n`)
