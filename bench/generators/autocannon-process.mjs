/** Runs autocannon in a separate process, because it would otherwise share the bench's event loop. */
import autocannon from 'autocannon'

process.once('message', async ({ url, connections, seconds, requests }) => {
  const result = await autocannon({ url, connections, duration: seconds, timeout: 10, requests })
  const answered = result.requests.total
  process.send(
    {
      requests: answered,
      perSecond: answered / result.duration,
      p50Ms: result.latency.p50,
      p99Ms: result.latency.p99,
      maxMs: result.latency.max,
      failed: result.non2xx + result.errors + result.timeouts,
    },
    () => process.disconnect(),
  )
})
