// What planted faults and their programs use of the package, from the sources.
import { loadApi } from '../../scripts/faults/api.mjs'

export const api = await loadApi((name) =>
  name === 'index'
    ? import('tensorfx')
    : name === 'entries/compile'
      ? import('tensorfx/compile')
      : name === 'entries/fx'
        ? import('tensorfx/fx')
        : import('tensorfx/debug'),
)
