// tensorfx/register: `node --import tensorfx/register program.js` rewrites the modules of the program as they are loaded, so that tracers see conditions.
import { register } from 'node:module'

register('../rewriter/hooks.js', import.meta.url)
